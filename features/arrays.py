"""The types of arrays."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
AttentionRows = NDArray[np.float32]
"""(J+1, I+2) attention of a candidate: target words and `</s>` on `<s>`, source words and `</s>`, as the network has
them: of a backward model its target is the source sentence."""
