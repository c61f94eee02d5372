-- Uses: scope, messages, work, erasing
-- ARGV[1], a JSON object: `ttl_s`; `update_id`, the update that turns memory on. Learning continues with the next message.
-- Messages from the time when memory was off are erased. Those that wait still are answered, but not kept (`was_off`).
-- Answers how many. The work items that they asked for stay, like those whose message only left the window: nobody
-- expects to lose a reminder by turning memory on. Questions whether a tool may run are erased. One about an import
-- stays, because a file is no message.
local request, off_at = cjson.decode(ARGV[1]), redis.call('HGET', META, 'off_at')
if not off_at then return 0 end
redis.call('HDEL', META, 'off_at')
redis.call('HSET', META, 'off_until', whole(request.update_id) .. '|' .. whole(now_ms()))
local said = ids_from(LOG, '(' .. off_at .. '-0')
if #said == 0 then return 0 end
erase_messages(said)
drop_questions_with_words(nil, 'import')
begin_again()
touch(request.ttl_s)
return #said
