"""Model server with dynamic batching.  README.md describes its use and design.

signature   checks of the model's signature and of the requests
bodies      conversion between arrays and the bodies of requests and answers
batching    formation and execution of batches
app         the endpoints and the metrics
__main__    the server process: options, socket and shutdown
load        a load test, optionally with a restart
"""
