-- Uses: scope
-- Keys: meta, reminders
-- ARGV[1], a JSON object: `id`; `epoch` and `erasure`, the versions under which was read what the item follows from.
-- ARGV[2]: the item. A repeat changes nothing. Answers 1, or 0 if something was erased since it was read.
local request = cjson.decode(ARGV[1])
local epoch, erasure = versions()
if epoch ~= request.epoch or erasure ~= request.erasure then return 0 end
redis.call('HSETNX', WORK, request.id, ARGV[2])
return 1
