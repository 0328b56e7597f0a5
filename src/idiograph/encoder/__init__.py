"""The model that comes with the package, without torch: its tokenizer, its graph on onnxruntime, its patches."""
