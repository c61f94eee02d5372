-- ARGV: epoch, erasure, ttl s, exchange ('' for a new one), message count, seven arguments a message.
local epoch, erasure = versions()
if epoch ~= ARGV[1] or erasure ~= ARGV[2] then return {'refused'} end
local exchange = ARGV[4]
if exchange == '' then exchange = redis.call('HINCRBY', META, 'exchanges', 1) end
local first = append(6, tonumber(ARGV[5]), exchange)
touch(ARGV[3])
return {'appended', tonumber(exchange), first}
