-- KEYS, all in the slot of usage: the turns of a person that were admitted; the turn that was refused and told so; what
-- today's answers have spent.
-- ARGV[1], a JSON object: `turn`; `max_turns` within `window_ms`; `told_ms`, how long one turn tells for all, and if that
-- is longer than the window, how long none is admitted; `max_tokens` a day; `is_task`. 0 means no bound.
-- Answers 'admitted'; 'turns' or 'tokens' for the one turn that tells the person about the bound; 'silenced' for later
-- turns. A repeated turn gets its first answer again.
local KNOWN_MS = 3600000 -- a turn that is begun again within this time counts once
local request, now = cjson.decode(ARGV[1]), now_ms()
local turn = request.turn
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - KNOWN_MS))
-- Turns in the future were admitted before the clock went back; they would count until it has caught up.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. whole(now), '+inf')
if redis.call('ZSCORE', KEYS[1], turn) then return 'admitted' end
local spent = tonumber(redis.call('HGET', KEYS[3], 'sum') or 0)
if request.max_tokens > 0 and spent >= request.max_tokens then
  if request.is_task then return 'tokens' end
  redis.call('HSETNX', KEYS[3], 'refused', turn)
  return redis.call('HGET', KEYS[3], 'refused') == turn and 'tokens' or 'silenced'
end
if request.max_turns > 0 then
  if is_from_the_future(KEYS[2], request.told_ms) then redis.call('DEL', KEYS[2]) end
  local is_silent = request.told_ms > request.window_ms and redis.call('EXISTS', KEYS[2]) == 1
  local since = '(' .. whole(now - request.window_ms)
  if is_silent or redis.call('ZCOUNT', KEYS[1], since, '+inf') >= request.max_turns then
    redis.call('SET', KEYS[2], turn, 'PX', request.told_ms, 'NX')
    return redis.call('GET', KEYS[2]) == turn and 'turns' or 'silenced'
  end
end
redis.call('ZADD', KEYS[1], whole(now), turn)
redis.call('PEXPIRE', KEYS[1], KNOWN_MS)
return 'admitted'
