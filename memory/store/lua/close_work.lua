-- Uses: scope, work
-- Keys: reminders, confirm, meta, mailbox
-- ARGV[1], a JSON object: `id`; `token` of the caller; `due`, when it is due next in ms, '0' for never. ARGV[2]: the
-- member of the mailbox that a task begins; then also `ttl_s`, and `begun`: what stands for its requests, and how long it
-- is kept in ms.
-- Ends a work item, or its turn of a rule. A task that is not due again is kept, not open and as if it was leased. Answers
-- 1; 0 if it was erased or another worker has taken it; or -1 if the conversation is off the record, where no task
-- begins. If the answer of a call was lost, its repeat finds the token among the confirmations.
local request = cjson.decode(ARGV[1])
local stored = redis.call('HGET', WORK, request.id)
local person, seq, _, _, _, token, body
if stored then person, seq, _, _, _, token, body = read_work(stored) end
if token ~= request.token then return redis.call('HEXISTS', CONFIRM, request.token) end
if ARGV[2] then
  local _, off_until = off_record()
  if off_until and off_until > now_ms() then return -1 end
  redis.call('ZADD', MAILBOX, 'NX', (read_entry(ARGV[2])), ARGV[2])
  redis.call('EXPIRE', MAILBOX, request.ttl_s)
else
  redis.call('HDEL', WORK, request.id) -- a script that deletes first is carried out when Redis is full: the message was sent
end
if ARGV[2] and request.due == '0' then
  local begun, kept_ms = string.match(request.begun, '^(%d+)|(%d+)$')
  redis.call('HSET', WORK, request.id, work_of(person, seq, 0, body, begun, now_ms() + kept_ms))
elseif request.due ~= '0' then
  redis.call('HSET', WORK, request.id, work_of(person, seq, request.due, body))
end
ask({[request.token] = 'closed'})
return 1
