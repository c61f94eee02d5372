-- Uses: scope, work
-- Keys: meta, reminders
-- ARGV[1], a JSON object: `item`, its id, person, sequence and due time in ms; `epoch` and `erasure`, the versions under
-- which the caller read what the item follows from. ARGV[2]: its JSON. A repeat changes nothing. Answers 1, or 0 if
-- something was erased since then.
local request = cjson.decode(ARGV[1])
local epoch, erasure = versions()
if epoch ~= request.epoch or erasure ~= request.erasure then return 0 end
local id, person, seq, due = unpack(request.item)
redis.call('HSETNX', WORK, id, work_of(person, seq, due, ARGV[2]))
return 1
