"""The laboratory: attacks, disclosure risk, the papers' numbers, measurements, the demo."""
