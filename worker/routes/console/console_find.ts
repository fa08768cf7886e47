import { findPage, listPages, listServices, MOST_FOUND } from '../../pages/frame/find.ts';
import { MAX_SEARCH } from '../../pages/frame/palette.ts';
import { findAll } from '../../services/audit/find_all.ts';
import { describePerson } from '../../services/people/account.ts';
import { forReader } from './console.ts';
import { consolePage } from './pages.ts';

/** `GET /find?q=`: a search of everything that the caller sees. Ctrl-K shows a part of this page in a dialog. */
export const getFindPage = forReader(async (c, caller) => {
  const context = c.get('context');
  const text = (c.req.query('q') ?? '').trim().slice(0, MAX_SEARCH);
  const pages = listPages(await describePerson(context, caller));
  const services = text === '' ? [] : listServices(c.get('services')());
  const found = await findAll(context, caller, { text, pages, services, limit: MOST_FOUND });
  return consolePage(c, caller, findPage({ text, found }));
});
