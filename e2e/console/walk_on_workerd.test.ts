import { describeWalk } from './describe_walk.ts';
import { IS_FULL } from '../support/full_counts.ts';
import { openOnWorkerd } from './open_control.ts';

describeWalk('workerd', openOnWorkerd, IS_FULL);
