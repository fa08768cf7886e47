import { z } from 'zod';

export const awsRegion = z
  .string()
  .regex(/^[a-z]{2,8}(?:-[a-z]{1,12}){1,3}-\d{1,2}$/, 'is not a region, such as eu-central-1');
