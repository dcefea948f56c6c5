-- Sends the body in the file $BENCH_BODY again and again; says at the end, as one line of JSON, how it went.
local file = assert(io.open(os.getenv("BENCH_BODY"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
file:close()

function done(summary, latency)
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write
    + summary.errors.status + summary.errors.timeout
  print(string.format('{"requests":%d,"seconds":%f,"failed":%d,"p50Ms":%f,"p99Ms":%f}',
    summary.requests, summary.duration / 1e6, failed, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
