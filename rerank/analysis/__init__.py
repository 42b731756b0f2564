"""What lists, choices and translations are like, in numbers that reports and plots show."""
