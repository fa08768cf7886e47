/** Who owns what is made. */
export const OWNER_CHOICES = [
  { value: 'personal', title: 'You' },
  { value: 'enterprise', title: 'Your enterprise' },
];
