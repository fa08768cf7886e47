import { describeWalk } from './describe_walk.ts';
import { openOnWorkerd } from './open_control.ts';

describeWalk('workerd', openOnWorkerd);
