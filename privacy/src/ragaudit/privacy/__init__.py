"""Privacy accounting, calibration and coalition estimates of ragaudit."""
