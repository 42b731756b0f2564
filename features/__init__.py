"""Features: functions of a source sentence and its n-best list that return numbers, and the models behind them."""
