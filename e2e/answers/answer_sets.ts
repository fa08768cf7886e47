import { holdsAny, needlesOf } from '../support/planted_secret.ts';
import type { SeenAnswer } from './every_answer.ts';

/** What holds one of these texts in any form. */
export function holding(answers: readonly SeenAnswer[], ...texts: readonly string[]): string[] {
  const needles = needlesOf(texts);
  return answers.filter(({ text }) => holdsAny(Buffer.from(text), needles)).map(({ to }) => to);
}

/** The routes that were answered with a status, and with content. */
export const answeredWith = (answers: readonly SeenAnswer[], status: number) =>
  new Set(answers.filter((each) => each.status === status && each.text.length > 0).map(({ route }) => route));

export const statusesOf = (answers: readonly SeenAnswer[]) => [...new Set(answers.map(({ status }) => status))];
