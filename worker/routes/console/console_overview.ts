import { overviewPage } from '../../pages/audit/overview.ts';
import { describeOverview } from '../../services/audit/overview.ts';
import { forReader } from './console.ts';
import { consolePage } from './pages.ts';

/** `GET /` */
export const getOverview = forReader(async (c, caller) => {
  const context = c.get('context');
  return consolePage(c, caller, overviewPage(await describeOverview(context, caller), context.clock.now()));
});
