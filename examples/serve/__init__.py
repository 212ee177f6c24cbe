"""A server for models: requests that arrive together run as one batch.  README.md says how it is used and how it works.

signature   what can be served, and whether a request fits it
bodies      arrays in the bodies of requests and answers
batching    requests to batches, batches to machines, results to requests
app         the endpoints and the metrics
__main__    the process: options, the socket, the end
load        a load test, over a restart too
"""
