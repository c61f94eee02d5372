-- Uses: scope, messages
-- ARGV[1], a JSON object: `epoch`, `erasure`, `ttl_s`, `messages`, and `exchange` unless they begin a new one.
-- Answers a list: 'refused', or 'appended' with the exchange and the sequence of the first message.
local request = cjson.decode(ARGV[1])
local epoch, erasure = versions()
if epoch ~= request.epoch or erasure ~= request.erasure then return {'refused'} end
local newest = redis.call('HGET', META, 'next_seq') or number_on() or 0
local exchange = request.exchange or redis.call('HINCRBY', META, 'exchanges', 1)
local first, last = append(request.messages, exchange, tonumber(newest))
redis.call('HSET', META, 'next_seq', whole(last))
touch(request.ttl_s, {LOG})
return {'appended', tonumber(exchange), first}
