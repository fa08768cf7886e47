import { describe, expect, test } from 'vitest';
import { parsePlan, planProblemText } from './plan_file.ts';
import { planTemplate } from './plan_template.ts';
import { PLAN_TEXT } from './testing/sample_plan.ts';

function problems(text: string): string[] {
  const parsed = parsePlan(text);
  return parsed.ok ? [] : parsed.error.map((problem) => planProblemText('plan.yaml', problem));
}

describe('plan.yaml', () => {
  test('is parsed', () => {
    const parsed = parsePlan(PLAN_TEXT);
    expect(parsed.ok && parsed.value.steps.map((step) => step.id)).toEqual(['fetch', 'count']);
  });

  test('the file that `svc plan init` writes is valid', () => {
    expect(problems(planTemplate('nightly'))).toEqual([]);
  });

  test('each problem names its line, in the order of the file', () => {
    const text = PLAN_TEXT.replace('api.example.com]', '"*.example.com"]').replace('command: [wc, -l]', 'comand: [wc]');
    expect(problems(text)).toEqual([
      expect.stringMatching(/^plan\.yaml:9: steps\[0\]\.trust\.hosts\[0\] has a "\*" in it/),
      expect.stringMatching(/^plan\.yaml:11: steps\[1\]\.command is missing/),
      'plan.yaml:12: steps[1] has the unknown field "comand": did you mean "command"?',
    ]);
  });

  test('a duplicate key is refused', () => {
    expect(problems(PLAN_TEXT.replace('name: nightly', 'name: nightly\nname: other'))).toEqual([
      'plan.yaml:3: the file is not valid YAML here: Map keys must be unique',
    ]);
  });

  test.each([
    ['', 'plan.yaml: the file is empty'],
    ['[', 'plan.yaml:1: the file is not valid YAML here'],
    ['5', 'plan.yaml:1: the file must be a plan'],
    ['a: &a [*a]', 'plan.yaml'],
    [`a: &a [x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b]\n`, 'has aliases that cannot be followed'],
    ['version: 1\n---\nversion: 1\n', 'is not valid YAML here'],
  ])('%j is refused', (text, expected) => {
    expect(problems(text).join('\n')).toContain(expected);
  });
});
