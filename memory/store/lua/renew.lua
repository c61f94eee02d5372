-- Uses: scope
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `lease_ms`.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
redis.call('PEXPIRE', LEASE, request.lease_ms)
return 'ok'
