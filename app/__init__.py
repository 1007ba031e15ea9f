"""The service: record of runs, queue, REST and pages."""
