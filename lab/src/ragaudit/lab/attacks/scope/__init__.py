"""`ragaudit attack scope`: does one tenant's key show another tenant's documents?"""
