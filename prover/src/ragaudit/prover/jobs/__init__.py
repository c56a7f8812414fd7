"""What runs by itself while the service is up."""
