-- Uses: scope
-- Keys: meta, confirm
-- ARGV[1], a JSON object: `nonce` of the question; `begun`, where the first of two steps of an erasure keeps its receipt;
-- `person`, who pressed cancel.
-- Withdraws a question that waits. Answers 'withdrawn', also for one that is gone; 'answered' if the answer came before;
-- 'not_yours' if somebody else was asked.
local request = cjson.decode(ARGV[1])
local asked, has_begun = unpack(redis.call('HMGET', CONFIRM, request.nonce, request.begun))
local kind, asker = string.match(asked or '', '^(%a+)|(%-?%d+)')
if has_begun or kind == 'done' then return 'answered' end
if asker and asker ~= request.person then return 'not_yours' end
redis.call('HDEL', CONFIRM, request.nonce)
return 'withdrawn'
