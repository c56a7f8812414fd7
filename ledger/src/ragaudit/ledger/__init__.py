"""Append-only Merkle ledger of ragaudit: records, tiles, notes, cosignatures, receipts, stores."""
