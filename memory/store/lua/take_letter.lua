-- ARGV: letter, '1' to put its mail back into the mailbox, ttl s. Answers whether there was one; while
-- its turn is still being closed there is none, for the commit would take the mail along. Nor can it be
-- put back while the lease that closed it is held, under which it would be taken for closed already.
if redis.call('HGET', TURN, 'id') == ARGV[1] then return 0 end
local fence = string.match(redis.call('GET', LEASE) or '', '^%d+')
if ARGV[2] == '1' and fence then
  local closed = redis.call('HGET', META, 'closed') or ''
  if string.find(closed, ',' .. ARGV[1] .. '|' .. fence .. ',', 1, true) then return 0 end
end
if redis.call('HEXISTS', DEAD, ARGV[1]) == 0 then return 0 end
for _, member in ipairs(drop_letter(ARGV[1])) do
  if ARGV[2] == '1' then redis.call('ZADD', MAILBOX, (read_entry(member)), member) end
end
touch(ARGV[3])
return 1
