"""`weft calibrate`: runs small jobs and loops on this machine, and fits the values of `weft.calibration` to them."""
