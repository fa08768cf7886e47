import { createHash } from 'node:crypto';
import brush from '../islands/brush.js';
import consoleIsland from '../islands/console.js';
import copy from '../islands/copy.js';
import decide from '../islands/decide.js';
import liveForm from '../islands/live_form.js';
import liveList from '../islands/live_list.js';
import localTimes from '../islands/local_times.js';
import notify from '../islands/notify.js';
import palette from '../islands/palette.js';
import push from '../islands/push.js';
import pushWorker from '../islands/push_worker.js';
import refreshed from '../islands/refreshed.js';
import relativeTimeIsland from '../islands/relative_time.js';
import search from '../islands/search.js';
import stream from '../islands/stream.js';
import viewRequest from '../islands/view_request.js';
import waiting from '../islands/waiting.js';
import { ASSET_FILES } from '../pages/frame/asset_files.ts';
import { Assets } from '../pages/frame/assets.ts';
import icon from '../pages/icon.svg';
import iconWaiting from '../pages/icon_waiting.svg';
import style from '../pages/style.css';

/** Text modules, by the rules of wrangler.toml. */
const TEXTS: Readonly<Record<string, string>> = {
  'style.css': style,
  'icon.svg': icon,
  'icon_waiting.svg': iconWaiting,
  'brush.js': brush,
  'console.js': consoleIsland,
  'copy.js': copy,
  'decide.js': decide,
  'live_form.js': liveForm,
  'live_list.js': liveList,
  'local_times.js': localTimes,
  'notify.js': notify,
  'palette.js': palette,
  'push.js': push,
  'push_worker.js': pushWorker,
  'refreshed.js': refreshed,
  'relative_time.js': relativeTimeIsland,
  'search.js': search,
  'stream.js': stream,
  'view_request.js': viewRequest,
  'waiting.js': waiting,
};

/** The assets on a runtime without files. */
export function workerdAssets(): Assets {
  const sources = ASSET_FILES.map(({ name }) => {
    const text = TEXTS[name];
    if (text === undefined) throw new Error(`workerd_assets.ts lacks ${name}`);
    return { name, text };
  });
  return new Assets(sources, (text) => createHash('sha256').update(text).digest('hex'));
}
