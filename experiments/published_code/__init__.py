"""What `import-torch` reads of the published PyTorch code."""
