-- KEYS: the reserve. Frees it, which is allowed when nothing else is; the one byte that stays says so.
-- Answers its length from now on; one that was never laid stays absent.
if redis.call('STRLEN', KEYS[1]) > 1 then
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], '-')
end
return redis.call('STRLEN', KEYS[1])
