// Faults in data, to plant in copies of a case: the judge must see each one at its stage.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "judge/record.h"
#include "judge/report.h"

namespace jemm {

struct DataFault {
  std::string name;
  StageId stage;     ///< that is to be blamed
  FindingKind kind;  ///< of the first finding
  /// Plants it in a case with at least two questions, an image and the tensors of two layers.
  std::function<void(CaseRecord&)> plant;
};

/// Every fault that data can show by itself.
const std::vector<DataFault>& data_faults();

}  // namespace jemm
