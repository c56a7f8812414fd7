"""`ragaudit risk`: what an attacker can gain, and what an attack proves about epsilon."""
