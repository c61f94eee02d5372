-- Uses: scope, interrupt
-- Keys: meta, lease, turn, mailbox, seen
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `lease_ms`; and the fields that `interrupt` reads.
-- Answers 'ok', 'refused', or why the run has to end: 'again' or 'stopped'. Then the lease is renewed as well.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
redis.call('PEXPIRE', LEASE, request.lease_ms)
return interruption(request) or 'ok'
