"""Write core/contract/printable.inc: the code points at which str.isprintable changes.

Usage: python3.12 make_printable.py > core/contract/printable.inc
Must run on CPython 3.12 (Unicode 15.0), the version whose repr the contract follows.
"""
import sys
import unicodedata

assert unicodedata.unidata_version == "15.0.0", unicodedata.unidata_version


def main():
    turns, printable = [], False
    for code in range(sys.maxunicode + 1):
        if chr(code).isprintable() != printable:
            printable = not printable
            turns.append(code)
    print(f"// str.isprintable of CPython {sys.version.split()[0]}, Unicode {unicodedata.unidata_version};"
          " written by golden/tools/make_printable.py")
    line = ""
    for code in turns:
        item = f"0x{code:X}, "
        if len(line) + len(item) > 100:
            print(line.rstrip())
            line = ""
        line += item
    print(line.rstrip())


main()
