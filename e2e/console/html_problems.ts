import { HtmlValidate } from 'html-validate';

/** What the HTML standard asks of a document, without matters of taste. */
const validator = new HtmlValidate({ extends: ['html-validate:standard'] });

/** Where a document does not conform to the HTML standard. */
export async function htmlProblems(source: string): Promise<string[]> {
  const { results } = await validator.validateString(source);
  return results
    .flatMap(({ messages }) => messages)
    .map(({ ruleId, message, selector }) => `html, ${ruleId}: ${message} (${selector ?? 'the document'})`);
}
