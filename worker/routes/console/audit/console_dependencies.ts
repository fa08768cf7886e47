import { capitalise } from '../../../../shared/model/sentence.ts';
import { DEPENDENCIES_PATH, dependenciesPage, dependenciesRefusedPage } from '../../../pages/audit/dependencies.ts';
import { describeDependencies } from '../../../installation/describe_dependencies.ts';
import { formAgain, forReader, type PageEntry } from '../console.ts';
import { consolePage } from '../pages.ts';

/** `GET /dependencies` */
const getDependencies = forReader(async (c, caller) => {
  const context = c.get('context');
  const described = await describeDependencies(context, caller);
  if (described.ok) return consolePage(c, caller, dependenciesPage(described.value, context.clock.now()));
  return formAgain(c, caller, dependenciesRefusedPage(capitalise(described.error.message)), described.error);
});

export const DEPENDENCY_PAGES: readonly PageEntry[] = [['get', DEPENDENCIES_PATH, getDependencies]];
