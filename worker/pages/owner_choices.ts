/** Who owns what is made. */
export const OWNER_CHOICES = [
  { value: 'personal', title: 'You' },
  { value: 'enterprise', title: 'Your enterprise' },
];

/** The same for who may make only what is its own. */
export function ownerChoices(isAdmin: boolean): typeof OWNER_CHOICES {
  return isAdmin ? OWNER_CHOICES : OWNER_CHOICES.filter(({ value }) => value === 'personal');
}
