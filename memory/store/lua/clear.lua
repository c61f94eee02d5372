-- Uses: scope
-- ARGV: nonce of the question, the person who pressed the button, update id of the confirmation, '1' if any admin may
-- confirm, ttl in s. Erases the conversation, once for a nonce.
-- Answers {'done', counts}, or {'unknown'} or {'not_yours'} if nothing was erased.
local receipt, asked = receipt_of(ARGV[1])
if receipt then return {'done', receipt} end
if not asked then return {'unknown'} end
local kind, asker = string.match(asked, '^(%a+)|(%-?%d+)')
if kind ~= 'clear' or (asker ~= ARGV[2] and ARGV[4] ~= '1') then return {'not_yours'} end
local counts = wipe(ARGV[3])
touch(ARGV[5])
return {'done', keep_receipt(ARGV[1], counts)}
