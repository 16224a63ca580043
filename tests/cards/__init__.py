"""Stand-ins for GPUs and for NCCL. The package under test knows nothing of them."""
