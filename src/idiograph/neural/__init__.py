"""The only place that imports torch: models that are not the shipped one."""
