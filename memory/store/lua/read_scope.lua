-- Uses: scope, delta
-- Keys: meta, learned, records, rvec
-- ARGV[1], a JSON object: `cursor` and `max`, as `read_delta` takes them. Answers as it does.
local request = cjson.decode(ARGV[1])
return read_delta(request.cursor, request.max)
