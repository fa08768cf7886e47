import { reportPage } from '../../pages/audit/report.ts';
import { reportSealability } from '../../services/audit/sealability_report.ts';
import { forReader } from './console.ts';
import { consolePage } from './pages.ts';

/** `GET /report` */
export const getReport = forReader(async (c, caller) => {
  const context = c.get('context');
  const report = await reportSealability(context, caller, c.get('templates')());
  return consolePage(c, caller, reportPage({ report, nowMs: context.clock.now() }));
});
