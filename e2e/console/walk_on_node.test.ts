import { describeWalk } from './describe_walk.ts';
import { openOnNode } from './open_control.ts';

describeWalk('Node', openOnNode, true);
