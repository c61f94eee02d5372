-- Uses: scope, messages, work, erasing
-- KEYS: all keys of the scope, and its staged ones (`restoring_log` and so on), which hold what is restored.
-- ARGV[1], a JSON object: `backup`, the id of the file; `epoch` and `erasure`, the versions under which the caller
-- decided; `ttl_ms`, how long the scope lives, 0 for ever; `staged`, how many fields or entries each staged key has.
-- Gives a scope without content what was staged for it, in one step.
-- Answers 'restored'; 'done' if it was restored from this file before; 'kept' if it has content; 'changed' if
-- something was erased since the caller has looked; 'lost' if not all that was staged is there.
local request = cjson.decode(ARGV[1])
local STAGED_META = key_of.restoring_meta
if redis.call('HGET', META, 'restored') == request.backup then return 'done' end
if redis.call('EXISTS', LOG, LEARNED, RECORDS, WORK, TURN) > 0 then return 'kept' end
if redis.call('HEXISTS', META, 'moved_from') == 1 then return 'kept' end
local epoch, erasure = versions()
if epoch ~= request.epoch or erasure ~= request.erasure then return 'changed' end
for name, count in pairs(request.staged) do
  local key = key_of['restoring_' .. name]
  local is_stream = redis.call('TYPE', key).ok == 'stream'
  if redis.call(is_stream and 'XLEN' or 'HLEN', key) ~= count then return 'lost' end
end

-- The streams first: a script that has written already may write on, even if Redis is full.
for target, staged in pairs({[LOG] = key_of.restoring_log, [VEC] = key_of.restoring_vectors,
  [LEARNED] = key_of.restoring_learned, [RECORDS] = key_of.restoring_records,
  [RVEC] = key_of.restoring_record_vectors, [WORK] = key_of.restoring_work}) do
  redis.call('DEL', target)
  if redis.call('EXISTS', staged) == 1 then
    redis.call('RENAME', staged, target)
    redis.call('PERSIST', target)
  end
end
local counters = {next_seq = true, next_record = true, exchanges = true, epoch = true, erasure = true, fence = true}
local fields = redis.call('HGETALL', STAGED_META)
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  local present = redis.call('HGET', META, name)
  if not present or (counters[name] and tonumber(value) > tonumber(present)) then
    redis.call('HSET', META, name, value)
  end
end
redis.call('DEL', STAGED_META)
begin_again() -- who has read this scope while it was empty has to read it once more
redis.call('HSET', META, 'restored', request.backup)
local ttl_ms = math.max(request.ttl_ms, redis.call('PTTL', META))
if request.ttl_ms == 0 then
  redis.call('PERSIST', META)
else
  for _, key in ipairs({META, LOG, VEC, LEARNED, RECORDS, RVEC}) do redis.call('PEXPIRE', key, whole(ttl_ms)) end
end
return 'restored'
