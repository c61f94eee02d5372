-- Uses: scope, delta, hold
-- Keys: meta, learned, records, rvec, log, vec, learner
-- ARGV[1], a JSON object: `cursor` and `max`, as `read_delta` takes them, without messages; `after`, the sequence of a
-- message, absent if no messages are wanted; and `token` and `lease_ms` if the caller learns.
-- Reads what a round of learning needs of a conversation. Answers a list: the answer of `read_delta`; the id of the
-- last message that has a vector and the fingerprint of the vectors, each '' if there is none; the messages after `after`, oldest first.
-- Answers an empty list, and reads nothing, if another process learns.
local request = cjson.decode(ARGV[1])
if request.token and not hold_lease(key_of.learner, request.token, request.lease_ms) then return {} end
local meta = {read_meta(unpack(DELTA_FIELDS))}
local _, _, _, _, _, _, fingerprint, _, _, _, _, newest = unpack(meta)
local last = fingerprint and last_of(VEC)
local messages = request.after and request.after < tonumber(newest or 0)
  and redis.call('XRANGE', LOG, '(' .. request.after .. '-0', '+', 'COUNT', request.max)
local delta = read_delta(request.cursor, request.max, meta)
return {delta, last and last[1] or '', fingerprint or '', messages or {}}
