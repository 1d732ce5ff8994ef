"""Training: the LightningModule, its loss, schedules, scores, callbacks and loggers."""
