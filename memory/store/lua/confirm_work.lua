-- Uses: scope, work
-- Keys: reminders, confirm, meta, mailbox
-- ARGV[1], a JSON object: `id`; `due`, when it is due in ms; `was_due`, when it was due, '0' if the person had not agreed.
-- ARGV[2]: its JSON.
-- Opens a work item that the person has agreed to, or changes one; not if it is due at another time than the caller has
-- read. Answers 1, or 0 if it is gone.
local request = cjson.decode(ARGV[1])
local stored = redis.call('HGET', WORK, request.id)
if not stored then return 0 end
local person, seq, due = read_work(stored)
if due == request.was_due then
  redis.call('HSET', WORK, request.id, work_of(person, seq, request.due, ARGV[2]))
end
return 1
