"""`ragaudit bench all`: a declared matrix of measurements, and the document made of its results."""
