"""What npuprof asks of the system: to start a process, to write a file, to say where a user keeps things."""
